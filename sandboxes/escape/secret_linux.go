package escape

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/internal/proc"
)

func secretAttacks() []Attack {
	return []Attack{
		{Name: "secrets/files of the host", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			home, err := os.UserHomeDir()
			if err != nil {
				home = "/root"
			}
			r.attack("files", filepath.Join(r.host, "secret"), filepath.Join(r.host, "other", "secret"),
				filepath.Join(r.host, "of-the-user"), filepath.Join(home, ".ssh"), filepath.Join(home, ".gitconfig"),
				filepath.Join(home, ".config"), filepath.Join(home, ".claude"), filepath.Join(home, ".codex"),
				"/etc/shadow", "/etc/sudoers", "/etc/ssh", "/etc/gitconfig", "/root/.ssh", "/proc/1/root/etc/shadow",
				"/proc/self/root/../../etc/shadow", "/.old", "/.scratch",
				"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
				"/run/dbus/system_bus_socket", "/run/user")
			r.Works()
			r.checkUnchanged()
		}},
		{Name: "secrets/processes of the host, their environment and arguments", Brief: true, Make: func(s *Suite) {
			token := rand.Text()
			cat, err := exec.LookPath("cat")
			if err != nil {
				s.Fatal(err)
			}
			named := filepath.Join(s.TempDir(), token[:nameLength]) // the name of a visible process is visible, too
			if err := os.Symlink(cat, named); err != nil {
				s.Fatal(err)
			}
			in, alive := io.Pipe()
			var ended sync.WaitGroup
			ended.Go(func() {
				_, _ = proc.Run(s.Bounded(), proc.Spec{
					Argv: []string{named, "/dev/stdin", "/" + token}, Stdin: in,
					Env: []string{"PATH=" + os.Getenv("PATH"), "ESCAPETEST_TOKEN=" + token},
				})
			})
			defer func() {
				_ = alive.Close()
				ended.Wait()
			}()
			_, _ = alive.Write([]byte("it runs when this has been read\n"))
			r := s.open(nil)
			// The attacker gets the token in two halves, so that it does not find its own arguments.
			r.attack("processes", token[:10], token[10:])
			out, _, err := r.Sh("env")
			if err != nil {
				s.Fatal(err)
			}
			for _, entry := range os.Environ() {
				name, value, _ := strings.Cut(entry, "=")
				if len(value) > 8 && name != "PATH" && strings.Contains(out, entry+"\n") {
					s.Errorf("%s of the host is visible inside", name)
				}
			}
		}},
	}
}

func attackFiles(a *attempt, paths []string) {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if entries, err := os.ReadDir(path); err == nil {
			if len(entries) > 0 {
				a.report("list", path, entries)
			}
			continue
		}
		a.readable(path)
	}
}

// nameLength is the number of bytes that the kernel keeps of a program's name.
const nameLength = 15

func attackProcesses(a *attempt, args []string) {
	token := []byte(strings.Join(args, ""))
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		a.report("no processes at all:", err)
	}
	for _, dir := range dirs {
		for _, file := range []string{"cmdline", "environ", "comm"} {
			if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil && bytes.Contains(text, token[:nameLength]) {
				a.report("see", dir, file)
			}
		}
	}
	for _, name := range []string{"environ", "mem", "maps", "root", "cwd", "exe", "fd/0", "fd/3"} {
		a.readable("/proc/1/" + name)
	}
	a.writable("/proc/1/mem")
}
