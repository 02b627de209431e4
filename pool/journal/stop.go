package journal

// Stop is why a run was asked to end.
type Stop string

const (
	StopShutdown   Stop = "shutdown"     // ralph was stopped
	StopAsked      Stop = "asked"        // a person asked for it
	StopClaimLost  Stop = "claim-lost"   // another ralph holds the claim
	StopSuperseded Stop = "superseded"   // the issue no longer qualifies
	StopMoved      Stop = "branch-moved" // somebody else has moved the run's branch on the remote
	StopDisk       Stop = "disk-full"    // the run wrote too much data
	StopCrash      Stop = "crash"        // ralph died during the run
)
