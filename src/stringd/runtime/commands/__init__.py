"""The commands of topics, one module a family; `table` lists them."""
