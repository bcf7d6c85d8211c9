#!/bin/sh
# In the machine, as root: has the kernel's SELinux enforce the policy, and plays.
set -eu
# one waits for the other all the time: on one processor that takes half as long
taskset 1 /payload/te-ops play selinux /payload/te/policy.33 /payload/contexts /payload/asked
