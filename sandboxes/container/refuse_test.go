package container_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// shim returns an engine whose program is a script; $1 is the first argument.
func shim(t *testing.T, e container.Engine, script string) container.Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	e.Command = []string{path}
	return e
}

// withFixes returns an error's text with its fixes.
func withFixes(err error) string {
	text := fmt.Sprint(err)
	if f, ok := errors.AsType[*sandboxes.FixError](err); ok {
		text += fmt.Sprint(" ", f.Fixes)
	}
	return text
}

const (
	goodInfo  = `info) echo '{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true}';;`
	goodImage = `image) echo '[{"Id":"sha256:1","Config":{}}]';;`
)

// TestBadEngines: each problem of a machine is reported in one line with a fix.
func TestBadEngines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nobody, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	nobody.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = nobody.Close()
	fails := `echo "warning" >&2; echo "it is broken" >&2; exit 1`
	for name, tt := range map[string]struct {
		engine container.Engine
		env    []string
		want   string
	}{
		"not installed": {
			container.Podman(), []string{"PATH=/nowhere"},
			"podman is not installed: install it: could not start podman: executable file not found in $PATH (PATH is /nowhere) [{provider }]",
		},
		"daemon down": {
			shim(t, container.Docker(), fails), []string{"DOCKER_HOST=unix://" + dir + "/s"},
			"docker's daemon does not run (nobody listens on " + dir + "/s): start it with sudo systemctl start docker, or Docker Desktop",
		},
		"no socket": {
			shim(t, container.Docker(), fails), []string{"DOCKER_HOST=unix://" + dir + "/none"},
			"docker's daemon does not run (nobody listens on " + dir + "/none): start it with sudo systemctl start docker, or Docker Desktop",
		},
		"remote": {
			shim(t, container.Docker(), fails), []string{"DOCKER_HOST=ssh://box"},
			"docker info: it is broken; this has to work: docker info",
		},
		"podman fails": {shim(t, container.Podman(), fails), nil, "podman info: it is broken"},
		"no limits": {
			shim(t, container.Podman(), `echo '{"host":{"cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true}}}'`), nil,
			"podman cannot limit cpu here: sandbox cannot do this; delegate these cgroup controllers to your user " +
				"(systemd: Delegate=yes on cgroup v2) [{unbounded }]",
		},
		"no image": {
			shim(t, container.Docker(), `case $1 in `+goodInfo+` *) exit 1;; esac`), nil,
			"docker has no image ralph:x [{image docker}]",
		},
		"nonsense": {
			shim(t, container.Docker(), `echo hello`), nil,
			"read what docker says about itself: invalid character 'h' looking for beginning of value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := tt.env
			if len(env) == 0 || !strings.HasPrefix(env[0], "PATH=") {
				env = append(env, "PATH="+os.Getenv("PATH"))
			}
			c := container.Config{Image: "ralph:x", HostEnv: env, Helper: "/bin/true"}
			err := container.New(tt.engine, c).Check(t.Context())
			if got := withFixes(err); got != tt.want {
				t.Errorf("error is\n%s\nwant\n%s", got, tt.want)
			}
			if name == "not installed" && !errors.Is(err, exec.ErrNotFound) {
				t.Error("it does not wrap exec.ErrNotFound")
			}
		})
	}
}

// TestRefusesToOpen: errors of the configuration and the spec are reported before any container is created.
func TestRefusesToOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		if err := os.Chown(dir, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	roots := t.TempDir()
	socket := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	good := sandboxes.Spec{Run: "r", Worktree: dir}
	engine := container.Config{HostEnv: []string{"PATH=" + os.Getenv("PATH"), "DOCKER_HOST=unix://" + socket}}
	mount := func(host, inside string) sandboxes.Spec {
		spec := good
		spec.Mounts = []sandboxes.Mount{{Host: host, Inside: inside}}
		return spec
	}
	for name, tt := range map[string]struct {
		config container.Config
		spec   sandboxes.Spec
		want   string
	}{
		"no run":                            {container.Config{}, sandboxes.Spec{Worktree: dir}, "the run has no id"},
		"relative worktree":                 {container.Config{}, sandboxes.Spec{Run: "r", Worktree: "x"}, `worktree "x" is not a clean absolute path`},
		"no .git":                           {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, GitDir: dir}, "worktree " + dir + " has no .git file: it is not a linked worktree"},
		"image is a flag":                   {container.Config{Image: "--privileged"}, good, `image "--privileged" starts with a dash`},
		"home with colon":                   {container.Config{Home: "/a:b"}, good, `home "/a:b" inside is not a clean absolute path without ':' and ','`},
		"user by name":                      {container.Config{User: "agent"}, good, `user "agent" is not UID:GID, in numbers [{user 1000:1000}]`},
		"own name":                          {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, Name: "-f"}, `"-f" cannot be the name of a container`},
		"host's network":                    {container.Config{Network: "host"}, good, `network "host" would join a network that is not the sandbox's own`},
		"other's network":                   {container.Config{Network: "container:db"}, good, `network "container:db" would join a network that is not the sandbox's own`},
		"other's users":                     {container.Config{UserNamespace: "ns:/proc/1/ns/user"}, good, `user namespace "ns:/proc/1/ns/user" would join a user namespace that is not the sandbox's own`},
		"network is a flag":                 {container.Config{Network: "-x"}, good, `network "-x" starts with a dash`},
		"device is a flag":                  {container.Config{Devices: []string{"--privileged"}}, good, `"--privileged" is neither a group nor a device`},
		"empty group":                       {container.Config{Groups: []string{""}}, good, `"" is neither a group nor a device`},
		"moved copy":                        {container.Config{Workdir: "/w"}, sandboxes.Spec{Run: "r", Worktree: dir, Disk: &sandboxes.Disk{}}, `working folder "/w": copied files keep the path that they have outside`},
		"working folder on ralph":           {container.Config{Workdir: "/.ralph/work"}, good, `working folder "/.ralph/work" inside would cover the home, or a folder of ralph or the system`},
		"working folder on a system folder": {container.Config{Workdir: "/etc"}, good, `working folder "/etc" inside would cover the home, or a folder of ralph or the system`},
		"working folder in one":             {container.Config{Workdir: "/proc/x"}, good, `working folder "/proc/x" inside would cover the home, or a folder of ralph or the system`},
		"working folder on programs":        {container.Config{Workdir: "/usr"}, good, `working folder "/usr" inside would cover the home, or a folder of ralph or the system`},
		"working folder on the home":        {container.Config{Workdir: "/home"}, good, `working folder "/home" inside would cover the home, or a folder of ralph or the system`},
		"disk and host":                     {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, Objects: []string{dir}, Disk: &sandboxes.Disk{}}, "a sandbox with its own disk cannot show host files: sandbox cannot do this"},
		"disk and home":                     {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, Home: dir, Disk: &sandboxes.Disk{}}, "a sandbox with its own disk cannot show host files: sandbox cannot do this"},
		"no home":                           {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, Home: dir + "/gone"}, "home: stat " + dir + "/gone: no such file or directory"},
		"disk on ralph":                     {container.Config{}, sandboxes.Spec{Run: "r", Worktree: dir, Disk: &sandboxes.Disk{Folders: map[string]string{"/.ralph/x": "x"}}}, "/.ralph/x inside is reserved for ralph"},
		"missing mount":                     {engine, mount(dir+"/gone", "/x"), "mount " + dir + "/gone: it does not exist on the host"},
		"mount inside":                      {engine, mount(dir, "x"), "mount " + dir + `: "x" is not a clean absolute path inside`},
		"mount on ralph":                    {engine, mount(dir, "/.ralph/ralph"), "mount " + dir + ": /.ralph/ralph inside is reserved for ralph"},
		"mount a socket":                    {engine, mount(socket, "/s"), "mount " + socket + ": sandbox cannot do this: it is a socket: its server would work for the agent, outside the sandbox"},
		"mount the engine":                  {engine, mount(dir, "/s"), "mount " + dir + ": the socket of a container engine is in it (" + socket + "), which is as good as root on the host"},
		"network besides the proxy": {
			container.Config{Network: "bridge"}, sandboxes.Spec{Run: "r", Worktree: dir, Egress: socket},
			"with network bridge the egress proxy is not the only egress: sandbox cannot do this; leave the network at its default",
		},
		"root's worktree": {
			container.Config{}, sandboxes.Spec{Run: "r", Worktree: roots},
			"the worktree " + roots + " belongs to root, and agents do not run as root by default; run ralph as another user " +
				"[{user 0:0} {copy 1000:1000}]",
		},
		"root's worktree for a user": {
			container.Config{User: "1000:1000"}, sandboxes.Spec{Run: "r", Worktree: roots},
			"user 1000:1000 cannot write the worktree " + roots + ", which belongs to user 0:0 [{copy } {user 0:0}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "root's worktree") && os.Getuid() != 0 {
				return // only root has such a worktree
			}
			c := tt.config
			if c.Image == "" {
				c.Image = "ralph:x"
			}
			c.Helper = "/bin/true"
			c.StateDir = filepath.Join(t.TempDir(), "state")
			e := shim(t, container.Docker(), `case $1 in `+goodInfo+goodImage+` *) echo "container made" >&2; exit 1;; esac`)
			_, err := container.New(e, c).Open(t.Context(), tt.spec)
			if want := "open sandbox docker: " + tt.want; withFixes(err) != want {
				t.Errorf("error is\n%v\nwant\n%s", err, want)
			}
			if _, err := os.Stat(c.StateDir); err == nil {
				t.Error("files are left behind")
			}
		})
	}
}

// A container that does not start leaves nothing: the container, by its name, and its files are removed.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	log := filepath.Join(t.TempDir(), "log")
	e := shim(t, container.Docker(), `echo "$*" >>`+log+`; case $1 in `+goodInfo+goodImage+` run) echo "no space left" >&2; exit 125;; esac`)
	_, err := container.New(e, container.Config{
		Image: "ralph:x", User: "0:0", StateDir: state, Helper: "/bin/true",
	}).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: dir})
	if err == nil || err.Error() != "open sandbox docker: docker run: no space left" {
		t.Errorf("error is %v", err)
	}
	calls, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(calls), "\nrm --force --volumes ralph-") {
		t.Errorf("calls are %s, %v", calls, err)
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An engine on another machine does not see this host's files. The error suggests copying them.
func TestEngineElsewhere(t *testing.T) {
	t.Parallel()
	e := shim(t, container.Docker(), `case $1 in `+goodInfo+goodImage+` run) echo "docker: no such path

Run 'docker run --help' for more information" >&2; exit 125;; esac`)
	_, err := container.New(e, container.Config{
		Image: "ralph:x", User: "0:0", StateDir: t.TempDir(), Helper: "/bin/true",
		HostEnv: []string{"PATH=" + os.Getenv("PATH"), "DOCKER_HOST=tcp://engine.invalid:2376"},
	}).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
	want := "open sandbox docker: docker run: docker: no such path; the engine may not see this host's files [{copy }]"
	if withFixes(err) != want {
		t.Errorf("error is %v\nwant %s", err, want)
	}
}

// A client that does not notice the end of its container is ended, and the error names the cause.
func TestClientThatNeverEnds(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	e := shim(t, container.Docker(), `case $1 in `+goodInfo+goodImage+`
		container) echo '{"Running":'$([ -e `+gone+` ] && echo false || echo true)',"ExitCode":9}';;
		exec) : >`+gone+`; exec sleep 1000;; esac`)
	p := container.New(e, container.Config{
		Image: "ralph:x", User: "0:0", StateDir: t.TempDir(), Helper: "/bin/true",
	})
	p.SetPatience(10*time.Millisecond, time.Minute, time.Minute)
	_, err := p.Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
	if want := "open sandbox docker: run git in the docker sandbox: its container has ended (exit status 9)"; err == nil || err.Error() != want {
		t.Errorf("error is %v\nwant %s", err, want)
	}
}

// An engine that does not answer is given up and not called again, whether or not its command is asked to end.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	for name, tt := range map[string]struct {
		asked, down      bool // the command is asked to end; the engine's program finds no engine
		quiet, call, end time.Duration
		want, calls      string
	}{
		"asked to end": {
			asked: true, quiet: long, call: long, end: 10 * time.Millisecond,
			want: "the engine does not answer: docker kill: no end within 10ms", calls: "kill ",
		},
		"away": {
			quiet: long, call: long, end: long, down: true,
			want: "the engine does not answer: docker container: no daemon", calls: "container container ps kill ",
		},
		"waiting": {
			quiet: 10 * time.Millisecond, call: 10 * time.Millisecond, end: 10 * time.Millisecond,
			want: "the engine does not answer: docker ps has not answered for 10ms", calls: "container ps kill ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			away := filepath.Join(dir, "away")
			then := "exec sleep 1000"
			if tt.down {
				then = "echo no daemon >&2; exit 1"
			}
			e := shim(t, container.Docker(), `if [ -e `+away+` ]; then [ $1 = exec ] || printf '%s ' $1 >>`+away+`; `+then+`; fi
				case $1 in `+goodInfo+goodImage+` exec) printf 'x\0\0\0\002{}';; esac`)
			p := container.New(e, container.Config{
				Image: "ralph:x", User: "0:0", StateDir: t.TempDir(), Helper: "/bin/true",
				HostEnv: []string{"PATH=" + os.Getenv("PATH")},
			})
			box, err := p.Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			p.SetPatience(tt.quiet, tt.call, tt.end)
			if err := os.WriteFile(away, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			interrupt := make(chan struct{})
			if tt.asked {
				close(interrupt)
			}
			_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"agent"}, Interrupt: interrupt, Grace: time.Millisecond})
			if want := "run agent in the docker sandbox: " + tt.want; !errors.Is(err, sandboxes.ErrUnavailable) || err.Error() != want {
				t.Errorf("error is %v\nwant %s", err, want)
			}
			calls, err := os.ReadFile(away)
			if err != nil {
				t.Fatal(err)
			}
			left := tt.calls
			for _, call := range strings.Fields(string(calls)) { // a call that was given up may not have been logged
				_, after, once := strings.Cut(left, call+" ")
				if left = after; !once {
					t.Errorf("it is asked %q, want %q", calls, tt.calls)
				}
			}
		})
	}
}

// An engine kills a container before it removes it, and may still report it as running. The error waits for the final
// state.
func TestContainerThatGoes(t *testing.T) {
	t.Parallel()
	const (
		running  = `{"Status":"running","Running":true}`
		stopping = `{"Status":"stopping"}`
		exited   = `{"Status":"exited","ExitCode":137}`
		removing = `{"Status":"removing","ExitCode":137}`
		noMemory = `{"Status":"exited","ExitCode":137,"OOMKilled":true}`
		childOOM = `{"Status":"running","Running":true,"OOMKilled":true}`
		gone     = ""
		removed  = "its container was removed while the command ran"
		noReport = "the engine's client ended without a report"
	)
	tests := []struct {
		name   string
		states []string // successive states of the container; the last one stays
		want   string
	}{
		{"running before", []string{running, running, running, running, exited, gone}, removed},
		{"stopping", []string{stopping, stopping, stopping, gone}, removed},
		{"exited before", []string{exited, exited, gone}, removed},
		{"slow to go", []string{removing}, removed},
		{"killed, and stays", []string{exited}, "its container was killed, by somebody or because memory ran out"},
		{"runs on", []string{running}, sandboxes.ErrKilledInside.Error()}, // as the client's status says
		{"runs on without its client", []string{running}, noReport},
		{"without memory", []string{exited, exited, noMemory}, "its container used up its memory [{memory }]"},
		{"without memory, and still called running", []string{childOOM, childOOM, noMemory}, "its container used up its memory [{memory }]"},
		{"runs on, and a child was killed for memory", []string{childOOM}, sandboxes.ErrKilledInside.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			states := filepath.Join(t.TempDir(), "states")
			if err := os.WriteFile(states, []byte(strings.Join(test.states, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			status := "137"
			if test.want == noReport {
				status = "1"
			}
			e := shim(t, container.Docker(), `f=`+states+`; case $1 in `+goodInfo+goodImage+`
				container) state=$(head -n 1 $f); [ $(wc -l <$f) = 1 ] || sed -i 1d $f; echo "$state"; [ "$state" ];;
				ps) head -n 1 $f | sed 's/..*/there/';;
				exec) exit `+status+`;; esac`)
			_, err := container.New(e, container.Config{
				Image: "ralph:x", User: "0:0", StateDir: t.TempDir(), Helper: "/bin/true",
				HostEnv: []string{"PATH=" + os.Getenv("PATH")},
			}).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
			if want := "open sandbox docker: run git in the docker sandbox: " + test.want; withFixes(err) != want {
				t.Errorf("error is %s\nwant %s", withFixes(err), want)
			}
		})
	}
}

// An engine whose program has disappeared is not called repeatedly: the error still names the first cause.
func TestEngineThatIsGone(t *testing.T) {
	t.Parallel()
	e := shim(t, container.Docker(), `case $1 in `+goodInfo+goodImage+`
		run) echo "no space left" >&2; exit 125;; rm) mv "$0" "$0.gone"; echo "it is stuck" >&2; exit 1;; esac`)
	_, err := container.New(e, container.Config{
		Image: "ralph:x", User: "0:0", StateDir: t.TempDir(), Helper: "/bin/true",
	}).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "docker rm: it is stuck") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// The state folder's name is not used as a pattern, and other runs keep their folders.
func TestRemoveFilesInAnyFolder(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "a [b")
	if err := container.RemoveFiles(state, "run"); err != nil {
		t.Errorf("without the folder: %v", err)
	}
	mine, other := container.ContainerName("run", "1"), container.ContainerName("other", "1")
	for _, name := range []string{mine, other} {
		if err := os.MkdirAll(filepath.Join(state, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := container.RemoveFiles(state, "run"); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(state); err != nil || len(files) != 1 || files[0].Name() != other {
		t.Errorf("left: %v, %v", files, err)
	}
}

// A container that ends during the search does not hide the others.
func TestAbandonedWhileAnotherEnds(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	labels := fmt.Sprintf(`{"ralph.run":"left","ralph.process":"%d 0@before %s"}`, os.Getpid(), host)
	e := shim(t, container.Docker(), `case "$1 $5" in
"ps "*) printf 'gone\nhere\n';;
"container gone") echo; echo 'Error: No such container: gone' >&2; exit 1;;
"container here") echo '`+labels+`';;
esac`)
	found, err := container.New(e, container.Config{StateDir: t.TempDir()}).Abandoned(t.Context())
	if err != nil || len(found) != 1 || found["here"] != "left" {
		t.Errorf("%q, %v", found, err)
	}
}
