#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Slurm on a cluster of namespaces: the real one, controller on h0, a daemon on each host, all in one partition.

    with Cluster(3) as cluster, Slurm(cluster) as slurm:
        cluster.run(0, ["salloc", "-N", "3", "true"], env=slurm.environment)

Everything it writes is in the cluster's folder, and its processes end with their hosts. Processes are tracked by their
session and not bound: neither control groups nor task plug-ins.
"""

import os
import shutil
import subprocess

from cluster import FOLDER, address
from testing import wait_until

CONFIG = """
ClusterName=emunic
SlurmctldHost=h0({head})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
LaunchParameters=use_interactive_step
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
PlugStackConfig=/dev/null
ReturnToService=2
PropagateResourceLimits=NONE
SlurmctldTimeout=600
SlurmdTimeout=600
{nodes}
PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES State=UP
"""
N_CPUS = 4                              # that it believes in
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol"]


def why_not():
    """The reason why Slurm cannot be run here, or None."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    return f"{', '.join(missing)}: not installed (Debian: slurm-wlm)" if missing else None


class Slurm:
    def __init__(self, cluster):
        self.cluster = cluster
        self.folder = FOLDER / "slurm"
        self.environment = {name: value for name, value in cluster.environment.items()
                            if name != "OMPI_MCA_plm_rsh_agent"} | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self):
        self.folder.mkdir(mode=0o755)
        (self.folder / "state").mkdir()
        nodes = "\n".join(f"NodeName=h{host} NodeAddr={address(host)} CPUs={N_CPUS} State=UNKNOWN"
                          for host in range(self.cluster.n_hosts))
        (self.folder / "slurm.conf").write_text(CONFIG.format(head=address(0), folder=self.folder, nodes=nodes))
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        # Of each host alone, unlike /tmp.
        (self.folder / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")
        self.start_munge()
        log = open(self.folder / "out", "w")
        for host in range(self.cluster.n_hosts):
            if host == 0:
                self.cluster.start(0, ["slurmctld", "-D", "-i"], env=self.environment, stdout=log, stderr=log)
            self.cluster.start(host, ["slurmd", "-D", "-N", f"h{host}"], env=self.environment, stdout=log, stderr=log)
        if not wait_until(self.is_up, 30):
            raise OSError(f"Slurm does not come up: {self.logs()}")
        return self

    def __exit__(self, *_):
        pass                            # its processes end with their hosts

    def start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {"key-file": "key", "pid-file": "pid", "log-file": "log", "socket": "socket", "seed-file": "seed"}
        words = [f"--{option}={self.folder}/munge.{suffix}" for option, suffix in files.items()]
        subprocess.run(["munged", "--force", *words], check=True)

    def is_up(self):
        done = self.cluster.run(0, ["sinfo", "-h", "-o", "%t %D"], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        return done.stdout.split() == ["idle", str(self.cluster.n_hosts)]

    def logs(self):
        files = [*self.folder.glob("*.log"), self.folder / "out"]
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in files)
