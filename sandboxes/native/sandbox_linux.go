package native

import (
	"context"
	"fmt"
	"sync"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

type sandbox struct {
	client *supervisor.Client
	group  *cgroup.Group
	plan   *plan

	mu   sync.Mutex
	oom  int // guarded by mu; processes killed by the kernel at the memory limit
	most int // guarded by mu; largest number of processes at the same time
}

var (
	_ sandboxes.Sandbox = (*sandbox)(nil)
	_ sandboxes.Noticer = (*sandbox)(nil)
)

// Workdir returns the worktree's path inside.
func (s *sandbox) Workdir() string { return s.plan.Workdir }

// Exec runs one command.
func (s *sandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	return s.client.Exec(ctx, cmd)
}

// Close kills the init process, and the kernel then kills everything in the sandbox. It may be called again if ctx ends
// first.
func (s *sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	s.most = max(s.most, s.group.Processes()) // before they are killed
	s.mu.Unlock()
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("close sandbox native: %w", err)
	}
	s.mu.Lock()
	s.oom = max(s.oom, s.group.Killed())
	s.mu.Unlock()
	if err := s.group.Remove(ctx); err != nil {
		return fmt.Errorf("close sandbox native: %w", err)
	}
	return nil
}

// Changes returns the path inside of the worktree's upper folder.
func (s *sandbox) Changes() string {
	if len(s.plan.Lower) == 0 {
		return ""
	}
	return changesPlace
}

// Notices reports how many processes were killed at the limits, and whether the process limit was reached.
func (s *sandbox) Notices() []sandboxes.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.Notices(s.plan.Memory, s.plan.PIDs, s.oom, s.most)
}
