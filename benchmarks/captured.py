"""Profile one captured update on a GPU: `python -m benchmarks.captured [--rows sender/FC2L]`.

For each model, it prints the time of an update of a stack of 35 replicates, next to the lower bounds of floors.py at
this device's rates of copies and products, and the slowest kernels, by PyTorch's profiler.
"""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import bound, floors
from benchmarks.courses import advancing, stack_of
from benchmarks.harness import Where, fastest, matching, rate, waiting
from icy.core.machine import device_name
from icy.core.text import markdown_table
from icy.models.kernels import triton_steps
from icy.training.stack import WARM_UP
from results.pages import describe_versions, read_options

MOST_KERNELS = 25  # number of kernels to print


def copy_rate(device: str, seconds: float, count: int) -> float:
    """Return the bytes per second that a copy of `count` numbers reads and writes."""
    one, wait = torch.zeros(count, device=device), waiting(device)
    other = torch.empty_like(one)

    def copy() -> None:
        other.copy_(one)
        wait()

    copy()
    return 2 * one.nbytes * rate(copy, seconds)


def profiled(
    model: str, device: str, engine: str, replicates: int, updates: int
) -> tuple[float, list[tuple[str, float, float]]]:
    """Return the seconds of an update, and the name, launches and microseconds per update of its kernels."""
    wait = waiting(device)
    advance = advancing(stack_of(model, Where(device, engine, replicates)), replicates).update
    advance(WARM_UP + 1)
    advance(updates)
    wait()
    _, seconds = fastest(lambda: (advance(updates), wait()))
    seconds /= updates
    on_cpu = device == "cpu"
    with profile(activities=[ProfilerActivity.CPU if on_cpu else ProfilerActivity.CUDA]) as found:
        advance(updates)
        wait()
    kernels = [
        (
            event.key,
            event.count / updates,
            (event.self_cpu_time_total if on_cpu else event.self_device_time_total) / updates,
        )
        for event in found.key_averages()
    ]
    return seconds, sorted(kernels, key=lambda kernel: -kernel[2])


def report(model: str, device: str, engine: str, replicates: int, updates: int, rates: tuple[float, float]) -> str:
    """Measure a model, and return a report as text; `rates` are the device's bytes and operations per second."""
    seconds, kernels = profiled(model, device, engine, replicates, updates)
    counted = floors.captured_update(model, replicates, triton=device != "cpu" and triton_steps.in_use() == "Triton")
    launches, busy = sum(count for _, count, _ in kernels), sum(took for _, _, took in kernels)
    memory, products = counted.needed / rates[0], counted.operations / rates[1]
    rows = [
        [name[:90], f"{count:g}", f"{took:,.0f}", f"{took / busy:.1%}"] for name, count, took in kernels[:MOST_KERNELS]
    ]
    ms = [f"{1e3 * value:.3f} ms" for value in (seconds, 1e-6 * busy, memory, products)]
    lines = (
        f"## {model}\n",
        f"An update of {replicates} replicates takes {ms[0]}, {ms[1]} of it in {launches:,.0f} kernels",
        f"({counted.launches:,} were counted). Its floors are {ms[2]} for the bytes that must move and {ms[3]} for its",
        "operations.\n",
        markdown_table(["kernel", "launches", "microseconds", "share"], rows, numbers=(1, 2, 3)),
    )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    given = read_options(
        __doc__,
        device="cuda",
        engine=("auto", "engine of icy"),
        rows=("*", "models or patterns, separated by commas; all by default"),
        replicates=floors.REPLICATES,
        updates=50,
        seconds=(1.0, "seconds for measuring the rates of the device"),
    )
    small = given.device == "cpu"
    rates = (
        copy_rate(given.device, given.seconds, 1 << (20 if small else 28)),
        1e9 * bound.large_product_rate(given.device, given.seconds, 512 if small else 16384),
    )
    print(f"{device_name(given.device)}; {describe_versions()}; steps of cells by {triton_steps.in_use()}.")
    print(f"Copies at {rates[0] / 1e12:.3g} TB/s, products in single precision at {rates[1] / 1e12:.3g} TFLOP/s.\n")
    for model in matching(floors.MODELS, given.rows):
        print(report(model, given.device, given.engine, given.replicates, given.updates, rates), "\n", flush=True)


if __name__ == "__main__":
    main()
