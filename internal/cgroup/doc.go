// Package cgroup limits the resources of sandboxes with Linux control groups, for the providers native and landlock.
// Version 1 has one hierarchy per controller; version 2 has one for all controllers, and a subtree of it must be delegated
// to this user. A sandbox's group is below ralph's own group or beside it, so that limits of ralph also apply to its
// sandboxes. Places and groups are immutable, and the functions are safe for concurrent use.
package cgroup
