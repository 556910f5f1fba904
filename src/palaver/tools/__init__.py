"""Tools of an agent: typed functions, and clients of the services that some of them ask."""
