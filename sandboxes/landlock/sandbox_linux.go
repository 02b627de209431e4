package landlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

type sandbox struct {
	plan    *plan
	client  *supervisor.Client
	scratch *scratch
	group   *cgroup.Group
	relay   *relay

	mu      sync.Mutex
	removed bool // guarded by mu; Close has succeeded
	oom     int  // guarded by mu; processes killed by the kernel at the memory limit
	most    int  // guarded by mu; largest number of processes at the same time
}

var (
	_ sandboxes.Sandbox    = (*sandbox)(nil)
	_ sandboxes.HostWriter = (*sandbox)(nil)
	_ sandboxes.Noticer    = (*sandbox)(nil)
)

// Workdir returns the worktree's path, which is the same on both sides.
func (s *sandbox) Workdir() string { return s.plan.Worktree }

// HostFolders returns the scratch folder, in which only the size of a single file is limited.
func (s *sandbox) HostFolders() []string { return []string{s.scratch.dir} }

// Exec runs one command.
func (s *sandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	cmd.Argv, cmd.Env = s.relay.replace(cmd.Argv), s.relay.replace(cmd.Env)
	exit, err := s.client.Exec(ctx, cmd)
	if errors.Is(err, supervisor.ErrEnded) {
		// Without the supervisor, the owner of a process is unknown: kill all processes of the run.
		err = errors.Join(err, proc.KillMarked(context.WithoutCancel(ctx), s.plan.Run))
	}
	return exit, err
}

// Close kills the running processes, waits for them, and restores what the sandbox changed. It may be called again if ctx
// ends first.
func (s *sandbox) Close(ctx context.Context) error {
	if err := s.close(ctx); err != nil {
		return fmt.Errorf("close sandbox landlock: %w", err)
	}
	return nil
}

func (s *sandbox) close(ctx context.Context) error {
	s.mu.Lock()
	s.most = max(s.most, s.group.Processes()) // before they are killed
	s.mu.Unlock()
	if err := s.client.Close(ctx); err != nil {
		return err
	}
	s.relay.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed { // the run's mark may be in use again
		return nil
	}
	if err := proc.KillMarked(ctx, s.plan.Run); err != nil {
		return err
	}
	s.oom = max(s.oom, s.group.Killed())
	if err := s.group.Remove(ctx); err != nil {
		return err
	}
	if err := s.scratch.remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.removed = true
	return nil
}

// Notices reports how many processes were killed at the limits, and whether the process limit was reached.
func (s *sandbox) Notices() []sandboxes.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.Notices(s.plan.Memory, s.plan.PIDs, s.oom, s.most)
}
