"""The query server: a folder of data sets comes in, questions with a price are answered. Needs `shoal[server]`."""
