package journal

// Stop is why a run was asked to end.
type Stop string

const (
	StopShutdown   Stop = "shutdown"     // ralph was stopped
	StopAsked      Stop = "asked"        // a person asked for it
	StopClaimLost  Stop = "claim-lost"   // another ralph has the issue
	StopSuperseded Stop = "superseded"   // the issue does not qualify any more
	StopMoved      Stop = "branch-moved" // somebody else has moved the run's branch on the remote
	StopDisk       Stop = "disk-full"    // the run wrote too much
	StopCrash      Stop = "crash"        // ralph died during the run
)
