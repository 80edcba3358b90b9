#!/bin/bash
# Template, not run: train on four machines of a SLURM cluster, one process for each GPU.
# The data and the run's folder lie on a file system that all machines share.
#SBATCH --job-name=accord-train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# A job that was stopped goes on from its last checkpoint when it is submitted again.
# The two dashes keep options of accord from torchrun, which would take --run for its own --run-path.
srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d \
  --rdzv-endpoint="$first:29500" -m -- accord fit /shared/mydata --run /shared/runs/mydata
