// Package cgroup limits the resources of sandboxes with the control groups of Linux. The providers native and landlock use
// it. Version 1 has one hierarchy for each controller; version 2 has one for all, a part of which must have been delegated
// to this user. A sandbox's group is below ralph's own, or beside it, so that ralph's limits are limits of its sandboxes
// too. Places and groups do not change once they are made; the functions are safe for concurrent use.
package cgroup
