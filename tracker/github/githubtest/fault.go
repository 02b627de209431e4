package githubtest

import "github.com/ralph-pool/ralph/tracker/forge/forgetest"

// Fault is the fault of one request.
type Fault = forgetest.Fault
