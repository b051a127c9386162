"""The tables that metrics take: `icy.metrics.Table` and `icy.metrics.read_table`."""

from icy.languages.readers import read_table as read_table
from icy.languages.table import Table as Table
