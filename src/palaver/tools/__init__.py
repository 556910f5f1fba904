"""What agents can do: plain typed functions, and the services some of them ask."""
