package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
)

// probe is one thing that must not be possible inside a sandbox.
type probe struct {
	What string `json:"what"`
	Held bool   `json:"held"`
	// Known: the provider says of itself that it does not hold this.
	Known bool `json:"known,omitempty"`
}

// gitFileProbe is the one that access rules cannot hold: the file is put back when the sandbox is closed.
const gitFileProbe = "replacing the .git file"

// attackTime bounds one probe.
const attackTime = 20 * time.Second

// attack tries, inside a sandbox of the provider, what must not be possible. Nothing on the host is harmed where it is.
func attack(ctx context.Context, provider sandboxes.Provider, path string) (probes []probe, err error) {
	dir, remove, err := tempdir.Held("ralph-check-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	secret := rand.Text()
	work, git, outside := filepath.Join(dir, "work"), filepath.Join(dir, "git"), filepath.Join(dir, "outside")
	for _, d := range []string{work, filepath.Join(git, "objects"), filepath.Join(git, "refs"), outside} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(work, ".git"), []byte("gitdir: "+git+"\n"), 0o644),
		os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644), // a provider may ask git inside
		os.WriteFile(filepath.Join(outside, "secret"), []byte(secret), 0o666),
		os.Chmod(outside, 0o777),
	); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var reached atomic.Int64
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-accepted }()

	env := []string{}
	if path != "" && showsHost(provider) {
		env = append(env, "PATH="+path)
	}
	box, err := provider.Open(ctx, sandboxes.Spec{Run: "check-" + strings.ToLower(secret[:8]), Worktree: work, GitDir: git, Env: env})
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", provider.Name(), err)
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	try := func(what, line string, held func(out string, ok bool) bool) error {
		limit, cancel := context.WithTimeoutCause(ctx, attackTime, errors.New("no end"))
		defer cancel()
		var out bytes.Buffer
		exit, err := box.Exec(limit, sandboxes.Command{Argv: []string{"sh", "-c", line}, Stdout: &out, Stderr: &out})
		if err != nil && limit.Err() == nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		p := probe{What: what, Held: held(out.String(), err == nil && exit.OK())}
		p.Known = !p.Held && what == gitFileProbe && provider.Capabilities().Isolation == sandboxes.AccessRules
		probes = append(probes, p)
		return nil
	}
	fails := func(_ string, ok bool) bool { return !ok }
	silent := func(out string, _ bool) bool { return !strings.Contains(out, secret) }
	if provider.Capabilities().Isolation != sandboxes.VM { // a virtual machine may have an engine of its own
		err = try("reaching the engine's socket", "test -S /var/run/docker.sock", fails)
	}
	err = errors.Join(err,
		try("reading a file of the host", "cat '"+filepath.Join(outside, "secret")+"'", silent),
		try("writing a file of the host", "echo x > '"+filepath.Join(outside, "made")+"'", func(string, bool) bool {
			_, err := os.Stat(filepath.Join(outside, "made"))
			return err != nil
		}),
		try("reading the environment of ralph", fmt.Sprintf("cat /proc/%d/environ", os.Getpid()), fails),
		try("signalling a process of the host", fmt.Sprintf("kill -0 %d", os.Getpid()), fails),
		try("changing the system", "echo x > /usr/bin/ralph-was-here", func(string, bool) bool {
			return os.Remove("/usr/bin/ralph-was-here") != nil
		}),
		try("mounting", "mount -t tmpfs none /mnt", fails),
		try("connecting to the host's loopback", fmt.Sprintf("git ls-remote http://%s/x", listener.Addr()), func(string, bool) bool {
			return reached.Load() == 0
		}),
		try(gitFileProbe, "rm -f .git && mkdir .git", func(string, bool) bool {
			info, err := os.Stat(filepath.Join(work, ".git"))
			return err == nil && !info.IsDir()
		}),
	)
	return probes, err
}
