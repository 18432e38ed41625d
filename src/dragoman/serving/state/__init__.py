"""What servers remember of clients: counts and glossaries, in memory or in a database.

Imports the store of glossaries and what is below it.
"""
