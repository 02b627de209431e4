package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestImageEngine checks that images are built and removed with the engine that the configured sandbox uses.
func TestImageEngine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		args   []string
		env    string
		want   string
	}{
		"configured":   {"sandbox: podman\n", []string{"image", "build"}, "", "podman build"},
		"removal":      {"sandbox: podman\n", []string{"image", "remove"}, "", "podman rmi"},
		"variable":     {"", []string{"image", "build"}, "RALPH_SANDBOX=podman", "podman build"},
		"named":        {"sandbox: podman\n", []string{"image", "build", "--engine=docker"}, "", "docker build"},
		"by its name":  {"sandbox: podman\n", []string{"docker", "build-image"}, "", "docker build"},
		"no container": {"sandbox: native\n", []string{"image", "build"}, "", "docker build"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/config.yaml", c.config)
			m.write(t, ".ralph/Containerfile", "FROM scratch\n")
			m.program(t, "docker", "echo docker $1\n")
			bin := m.program(t, "podman", "echo podman $1\n")
			got := m.run(t, func(h *compose.Host) {
				h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), c.env}
			}, c.args...)
			if got.status != 0 || !strings.Contains(got.stdout, c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestImageThatRunsDoNotTake checks the hint for an image that runs do not use by default.
func TestImageThatRunsDoNotTake(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"": {"image", "build"}, "give --image my:1": {"image", "build", "--image=my:1"},
		"give --image ralph:repo-": {"image", "build", "--file=other"},
	} {
		m := newMachine(t)
		m.write(t, ".ralph/Dockerfile", "FROM scratch\n")
		m.write(t, "other", "FROM other\n")
		bin := m.program(t, "docker", "true\n")
		got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} }, args...)
		if got.status != 0 || !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "image: ") != (want != "") {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

// TestImageRemovedTwice checks that a missing image is reported in one line, without the engine's own output.
func TestImageRemovedTwice(t *testing.T) {
	t.Parallel()
	for engine, says := range map[string]string{
		"docker": "Error: No such image: ralph:x",
		"podman": "Error: inspecting object: ralph:x: image not known",
	} {
		m := newMachine(t)
		bin := m.program(t, engine, "[ $1 = info ] && exit; echo '"+says+"' >&2; exit 1\n")
		got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} },
			"image", "remove", "--image=ralph:x", "--engine", engine)
		want := ran{status: exit.Failed, stderr: "ralph: " + engine + " has no image ralph:x: it was removed or never built; name another with --image or --engine\n"}
		if got != want {
			t.Errorf("%s: got %+v", engine, got)
		}
	}
}

// TestImageWithoutADaemon checks that a missing daemon is reported in one line with a hint, without docker's own output.
func TestImageWithoutADaemon(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/Dockerfile", "FROM scratch\n")
	bin := m.program(t, "docker", "echo DEPRECATED; echo 'Cannot connect to the Docker daemon' >&2; exit 1\n")
	for _, args := range [][]string{{"image", "build"}, {"docker", "remove-image"}} {
		got := m.run(t, func(h *compose.Host) {
			h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "DOCKER_HOST=unix://" + m.root + "/none.sock"}
		}, args...)
		want := ran{status: exit.Parked, stderr: "ralph: docker's daemon does not run (nobody listens on ROOT/none.sock): start it with " +
			"sudo systemctl start docker, or Docker Desktop\n"}
		if got != want {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestImageHints checks the hints for what a build lacks.
func TestImageHints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, want string
		status     int
	}{
		"no build file": {"Dockerfile", "no Dockerfile in .ralph\nralph: create one with: ralph init --sandbox docker; or name your own with --file\n", exit.Usage},
		"no engine":     {".ralph/Dockerfile", "docker is not installed: ", exit.Parked},
	} {
		m := newMachine(t)
		m.write(t, c.file, "FROM scratch\n")
		got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + m.root} }, "image", "build", "--engine=docker")
		if got.status != c.status || !strings.Contains(got.stderr, c.want) || name == "no engine" && !strings.Contains(got.stderr, "install it, or name another engine with --engine") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestImageContext checks that the build context is the build file's folder, without ignored files.
func TestImageContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"own":   {nil, ".ralph/.gitignore .ralph/Dockerfile .ralph/tools/x"},
		"named": {[]string{"--file", "Dockerfile"}, ".gitignore .ralph/.gitignore .ralph/Dockerfile .ralph/tools/x Dockerfile README ign link"},
	} {
		m := newMachine(t)
		for path, text := range map[string]string{
			"Dockerfile": "FROM project\n", ".env": "KEY=1\n", ".ralph/.env": "KEY=2\n", ".ralph/Dockerfile": "FROM scratch\n", "README": "x",
			".ralph/tools/x": "x", ".gitignore": "ignored\n", ".ralph/.gitignore": "/other.env\n", "ignored": "x", ".ralph/other.env": "KEY=3\n", "ign": "x",
		} {
			m.write(t, path, text)
		}
		if err := os.Symlink("/etc/passwd", m.repo+"/link"); err != nil {
			t.Fatal(err)
		}
		seen := filepath.Join(m.home, "seen")
		bin := m.program(t, "docker", `for dir; do :; done; cd "$dir" && find . -type f -o -type l | sort | tr '\n' ' ' >'`+seen+`'; pwd >>'`+seen+"'\n")
		got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} },
			append([]string{"image", "build", "--engine=docker"}, c.args...)...)
		text, err := os.ReadFile(seen)
		if err != nil || got.status != exit.OK {
			t.Fatalf("%s: %v, %+v", name, err, got)
		}
		files, dir, _ := strings.Cut(string(text), " /")
		if files = strings.ReplaceAll(files, "./", ""); name == "own" {
			c.want = strings.ReplaceAll(c.want, ".ralph/", "")
		}
		if files != c.want {
			t.Errorf("%s: the build sees %q, want %q", name, files, c.want)
		}
		if _, err := os.Stat("/" + strings.TrimSpace(dir)); !os.IsNotExist(err) {
			t.Errorf("%s: the copy is still there: %v", name, err)
		}
	}
}

// TestInitBuildsTheImage checks that init ends with the build if the user agrees, and with the command for it otherwise.
func TestInitBuildsTheImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		answer string // typed on a terminal; empty: there is none
		built  bool
	}{
		"yes":      {[]string{"--yes"}, "", true},
		"agreed":   {[]string{"--model="}, "\ntrue\nyes\n", true},
		"declined": {[]string{"--model="}, "\ntrue\nno\n", false},
		"no one":   {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, "go.mod", "module x\n")
			m.write(t, "go.sum", "")
			bin := m.program(t, "docker", "echo docker $1\n")
			got := m.run(t, func(h *compose.Host) {
				h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "RALPH_CONTAINER_USER=1000:1000"}
				if c.answer != "" {
					h.Interactive, h.Stdin = true, strings.NewReader(c.answer)
				}
			}, append([]string{"init", "--agent=codex", "--sandbox=docker"}, c.args...)...)
			if got.status != 0 || strings.Contains(got.stdout, "\nBuilt ralph:") != c.built || strings.Contains(got.stdout, "ralph image build") == c.built {
				t.Errorf("got %+v", got)
			}
			if strings.Index(got.stdout, "\nNext:\n") < strings.Index(got.stdout, "\nBuilt ralph:") { // the steps may have scrolled away
				t.Errorf("the next steps stand above the build: %s", got.stdout)
			}
		})
	}
	m := newMachine(t)
	bin := m.program(t, "docker", "exit 3\n")
	got := m.run(t, func(h *compose.Host) {
		h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "RALPH_CONTAINER_USER=1000:1000"}
	},
		"init", "--agent=codex", "--sandbox=docker", "--yes")
	if got.status == 0 || !strings.Contains(got.stderr, "the files are written, but the image is not built") || !strings.Contains(got.stderr, "ralph image build") {
		t.Errorf("a build that fails: %+v", got)
	}
}
