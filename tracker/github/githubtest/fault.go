package githubtest

import "github.com/ralph-pool/ralph/tracker/forge/forgetest"

// Fault is a fault of one request.
type Fault = forgetest.Fault
