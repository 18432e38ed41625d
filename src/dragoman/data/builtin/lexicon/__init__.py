"""What words there are: nouns, verbs, adjectives, names, numbers, times, with all their forms.

Imports the types of `dragoman.data.builtin.meaning`.
"""
