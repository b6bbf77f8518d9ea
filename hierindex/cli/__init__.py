"""The command line: arguments in, library calls, text or JSON out."""
