"""A one-node Slurm on loopback, owned by the user of the test and stopped at its end."""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue", "setpriv")
CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=1
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def missing():
    return [name for name in PROGRAMS if not which(name)]


def which(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        self.env["SLURM_CONF"] = str(folder / "slurm.conf")
        for name in "state", "spool":
            (folder / name).mkdir()

    def __enter__(self):
        folder = self.folder
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0], ports=free_ports(2), user=getpass.getuser(), folder=folder
            )
        )
        try:
            self.start(
                "munged",
                "--foreground",
                "--force",
                "--num-threads=2",
                f"--key-file={key}",
                *(f"--{what}-file={folder}/munge.{what}" for what in ("log", "pid", "seed")),
                f"--socket={folder}/munge.socket",
            )
            self.until(lambda: (folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "-D")
            self.start("slurmd", "-D", "-N", "node1")
            self.until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T", check=False), "the node")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.ask("scancel", "--user", getpass.getuser(), check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, name, *arguments):
        log = open(self.folder / f"{name}.output.log", "w")
        # The daemons end with the test, even if it crashes.
        self.daemons.append(
            subprocess.Popen(["setpriv", "--pdeathsig", "KILL", which(name), *arguments], stdout=log, stderr=log, env=self.env)
        )

    def until(self, holds, what):
        """Waits without a time limit while the daemons run. The caller's timeout applies."""
        while not (found := holds()):
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    logs = {p.name: p.read_text()[-1500:] for p in self.folder.glob("*.log")}
                    raise AssertionError(f"waiting for {what}: {daemon.args[0]} ended with {daemon.returncode}: {logs}")
            time.sleep(0.05)
        return found

    def ask(self, *command, check=True):
        done = subprocess.run(list(map(str, command)), env=self.env, capture_output=True, text=True, cwd=self.folder)
        assert not check or done.returncode == 0, (command, done.stderr)
        return done.stdout

    def states(self, job):
        """{array index: state} of the tasks that the controller still lists."""
        lines = self.ask("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T", check=False).split("\n")
        return {int(number): state for number, state in (line.split() for line in lines if line)}
