// Package cgroup bounds what a sandbox uses of the machine, by the control groups of Linux. Which can be used differs:
// version 1 has one hierarchy a controller, version 2 one for all, of which a part must have been given to this user. A
// sandbox gets a group below the one ralph is in, or beside it, so that what bounds ralph bounds its sandboxes too.
package cgroup
