function __dragoman_at
    set -l said (commandline -opc)
    set -l last (math (count $argv) + 1)
    test "$said[2..$last]" = "$argv"
end
function __dragoman_needs_verb
    set -l said (commandline -opc)
    test (count $said) -eq (math (count $argv) + 1); and test "$said[2..-1]" = "$argv"
end
