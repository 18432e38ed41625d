(( $+functions[compdef] )) || { autoload -U compinit && compinit; }
autoload -U bashcompinit && bashcompinit
