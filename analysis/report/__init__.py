"""Reports: results as one self-contained HTML file, with sortable tables and interactive charts."""
