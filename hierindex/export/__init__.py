"""Export of trees to files and to other libraries."""
