package sandboxes

// Prefixer is implemented by sandboxes that a program of the host can enter by a command line of its own.
type Prefixer interface {
	// CommandPrefix returns the words to put before a command's argv to run it inside, such as docker exec and its
	// arguments. A command that is started in this way ends with the sandbox at the latest.
	CommandPrefix() ([]string, error)
}
