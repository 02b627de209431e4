package proof

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An ssh-agent signs for a key of which ralph has the public half only, also one with a passphrase. What anybody but the key
// has signed does not count.
func TestKeyOfSSHAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	start := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := start.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = start.Process.Kill(); _ = start.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil { // it says where it listens
		t.Fatal(err)
	}
	ssh := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket, "SSH_ASKPASS_REQUIRE=force", "SSH_ASKPASS="+filepath.Join(dir, "ask"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ask"), []byte("#!/bin/sh\necho secret\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key")
	ssh("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", file)
	if _, err := ReadKey(file, socket); err == nil || !strings.Contains(err.Error(), "name its public half") {
		t.Errorf("a passphrase: %v", err)
	}
	key, err := ReadKey(file+".pub", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "ssh-add FILE") {
		t.Errorf("the agent has no key: %v", err)
	}
	if _, err := sign(t.Context(), Statement{}, key); err == nil {
		t.Error("an agent without the key has signed")
	}
	ssh("ssh-add", "-q", file)
	if err := key.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := statement(record())
	line, err := sign(t.Context(), s, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, by, err := open(t.Context(), line, []PublicKey{key.Public()}); err != nil || by != key.String() {
		t.Errorf("signed by %s: %v", by, err)
	}
	if _, _, err := open(t.Context(), line, []PublicKey{newKey(t).Public()}); err == nil {
		t.Error("another key has signed it, too")
	}
	if alone, err := ReadKey(file+".pub", ""); err != nil || alone.Check(t.Context()) == nil || alone.Public().Fingerprint != key.String() {
		t.Errorf("without an agent: %v", err)
	}
	if nobody, _ := ReadKey(file+".pub", socket+"x"); nobody.Check(t.Context()) == nil {
		t.Error("nobody listens there")
	}
	both, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(keep(t, 0o644, append(both, both...)), socket); err == nil || !strings.Contains(err.Error(), "2 public keys") {
		t.Errorf("two keys: %v", err)
	}
}

// An agent that does not answer keeps nobody waiting when the run ends.
func TestSilentSSHAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		cancel(errors.New("the run ends"))
		_, _ = conn.Read(make([]byte, 1<<10))
		<-t.Context().Done()
		_ = conn.Close()
	}()
	defer l.Close()
	defer cancel(nil)
	key := &Key{agent: l.Addr().String(), public: newKey(t).Public()}
	if err := key.Check(ctx); err == nil {
		t.Error("it has answered")
	}
}
