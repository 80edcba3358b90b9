#!/bin/bash
# Template, not run: label one graph that no machine holds, on eight machines of a SLURM cluster.
#SBATCH --job-name=accord-huge
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --mem=0
#SBATCH --time=04:00:00
set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=1 --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d \
  --rdzv-endpoint="$first:29500" -m -- accord predict /shared/runs/mydata /shared/huge --parts "$SLURM_NNODES" \
  --out /shared/labels
