"""The query server: answer priced questions about a folder of data sets over HTTP. Needs `shoal[server]`."""
