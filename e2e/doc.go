// Package e2e contains the end-to-end tests. They run ralph as a process on real git repositories, with the scripted agent
// (package scripted) and with the real coding CLIs against a scripted model (package mockmodel). The package has no other code.
package e2e
