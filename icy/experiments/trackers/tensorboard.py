"""Tracker for TensorBoard."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icy.records.record import Record

from .base import Tracker, _span, curve_of, metrics_of, parameters_of, run_name, version_of


class TensorBoardTracker(Tracker):
    """Event files, a folder per result: `tensorboard --logdir OUT/tracking/tensorboard`.

    The parameters are in the HPARAMS tab. A folder is named after the result and its key. The folder of a result that
    is trained again is replaced. Writing a folder takes 0.01 seconds.
    """

    name, title, packages = "tensorboard", "TensorBoard", ("tensorboard", "torch.utils.tensorboard")

    def _versions(self) -> Iterator[str]:
        return (path.suffix[1:] for path in self.place.glob("*/events.out.tfevents.*"))

    def _write(self, record: Record) -> None:
        folder = self.place / f"{re.sub('[^A-Za-z0-9._+-]', '-', run_name(record))}-{record['key'][:8]}"
        # TensorBoard watches self.place, so the files are moved there when they are complete.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=f".{self.name}-") as scratch:
            self._write_events(record, Path(scratch) / folder.name)
            if folder.exists():
                shutil.rmtree(folder)
            (Path(scratch) / folder.name).rename(folder)

    def _write_events(self, record: Record, folder: Path) -> None:
        from tensorboard.plugins.hparams import summary_v2
        from torch.utils.tensorboard import SummaryWriter

        began, ended = _span(record)
        with SummaryWriter(str(folder), filename_suffix=f".{version_of(record)}") as writer:
            # Not writer.add_hparams: it makes a subfolder, and HPARAMS then shows only the first run's parameters.
            about = summary_v2.hparams_pb(parameters_of(record), trial_id=record["key"], start_time_secs=began)
            writer.file_writer.add_summary(about)
            for steps, readings in curve_of(record):
                for name, value in readings.items():
                    writer.add_scalar(name, value, steps)
            metrics = metrics_of(record)
            for name, value in metrics.items():
                writer.add_scalar(name, value, int(metrics.get("steps", 0)))
            if record["failed"]:
                writer.add_text("error", str(record["error"]))
            writer.file_writer.add_summary(_ending(record, ended))


def _ending(record: Record, ended: float) -> Any:
    """Return the event with the final status for the HPARAMS tab; TensorBoard's own function needs TensorFlow."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    status = api_pb2.STATUS_FAILURE if record["failed"] else api_pb2.STATUS_SUCCESS
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=ended)
    content = plugin_data_pb2.HParamsPluginData(session_end_info=end, version=metadata.PLUGIN_DATA_VERSION)
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=SummaryMetadata(plugin_data=plugin))
    return Summary(value=[value])
