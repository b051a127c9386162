"""Reports: results as one HTML file, with tables that sort and filter, pictures to point at, and nothing to fetch."""
