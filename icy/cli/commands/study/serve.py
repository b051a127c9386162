"""`icy study serve`: run studies on this machine."""

from __future__ import annotations

import os

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import note

PASSWORD = "ICY_STUDY_PASSWORD"
EPILOG = f"""\b
Examples:
  icy study serve pilot
  icy study serve pilot --researcher
  icy study serve spy-codes --behind-proxy --base-url https://study.example --root-path /spy

\b
STUDY is a settings file of `icy study new`, or its name. Without --host only this machine can reach the service. Put it
behind a proxy with TLS to let people in. The page of the researcher is at STUDY/researcher, for this machine only, or
with the password in the variable {PASSWORD}.

\b
A study that requires ids admits nobody until its link is tested: give the platform the printed test link, open the
study there, and confirm the received id. --skip-link-test marks the link as tested instead.
"""


@command("serve", epilog=EPILOG)
@click.argument("study", nargs=-1, required=True, type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of this machine to listen at.")
@click.option("--port", default=8000, show_default=True, help="Port to listen at.")
@click.option("--base-url", default="", metavar="URL", help="Address that people use, as in https://study.example.")
@click.option("--root-path", default="", metavar="PATH", help="Path before the study in this address, as in /spy.")
@click.option("--behind-proxy", is_flag=True, help="Trust the client addresses from a proxy on this machine.")
@click.option("--researcher", is_flag=True, help="Serve a page with the progress of every condition.")
@click.option("--skip-link-test", is_flag=True, help="Open studies without a test of the platform's link.")
def serve_command(
    study: tuple[str, ...],
    host: str,
    port: int,
    base_url: str,
    root_path: str,
    behind_proxy: bool,
    researcher: bool,
    skip_link_test: bool,
) -> int:
    """Run one or more studies as a web service, until Ctrl-C."""
    from icy.study.service import open_study, read_plan
    from icy.study.service.links import link_to_test, needs_test, pass_test
    from icy.study.service.serve import Serving, app_of, listening, serve

    serving = Serving(
        host=host,
        port=port,
        base_url=base_url,
        root_path=root_path,
        behind_proxy=behind_proxy,
        researcher=researcher,
        password=os.environ.get(PASSWORD, ""),
    )
    studies = [open_study(read_plan(one)) for one in study]
    app, at = app_of(studies, serving), listening(serving)
    for one in studies:
        note(f"{one.name} ({one.plan.state}): {serving.address(one.name)}")
        if researcher:
            note(f"Progress: {serving.address(one.name)}/researcher")
        if needs_test(one):
            if skip_link_test:
                pass_test(one)
            else:
                link = link_to_test(one, serving.address(one.name))
                note(f"Nobody can take part in {one.name} until its link is tested. Put this link into the platform,")
                note(f"open the study there, and confirm the received id: {link}")
    serve(app, serving, at)
    note("Stopped; all recorded data is saved.")
    return DONE
