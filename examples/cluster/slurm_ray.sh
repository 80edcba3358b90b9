#!/bin/bash
# Template, not run: a Ray cluster on four machines of a SLURM cluster, and a search for settings on it.
#SBATCH --job-name=accord-tune
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
set -euo pipefail
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | awk '{print $1}'):6379
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --num-cpus="$SLURM_CPUS_PER_TASK" --block &
sleep 20
srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$head" \
  ray start --address="$address" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
sleep 20
accord tune /shared/mydata --run /shared/runs/tuned --engine ray --address "$address"
