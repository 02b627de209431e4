// Package e2e holds the end-to-end tests: ralph as a process on real git repositories, with the scripted agent (package
// scripted) and with the real coding CLIs against a scripted model (package mockmodel). It has no code of its own.
package e2e
