"""The command line: parses arguments, prints results and writes files. No other folder parses arguments."""
