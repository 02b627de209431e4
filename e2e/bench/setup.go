package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// installs is a project whose setup installs packages.
type installs struct {
	name  string
	files map[string]string
	lock  string // command that creates the lock file; needs the network
	setup string // as proposed by ralph init
	gate  string
}

func installations() []installs {
	return []installs{
		{
			name:  "Go",
			lock:  "go mod tidy",
			setup: "go mod download && (go vet ./... container/ring; go test -run '^$' ./... container/ring || true)",
			gate:  "go vet ./... && go test ./...",
			files: map[string]string{
				"go.mod": "module app.example/app\n\ngo 1.21\n",
				"main.go": "package main\n\nimport (\n\t\"github.com/rs/zerolog/log\"\n\t\"github.com/spf13/viper\"\n)\n\nfunc " +
					"main() { log.Print(viper.New().AllKeys()) }\n",
			},
		},
		{
			name:  "npm",
			lock:  "npm install --package-lock-only --no-audit --no-fund",
			setup: "npm ci --no-audit --no-fund",
			gate:  "npm test",
			files: map[string]string{
				"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"tsc --version"},"dependencies":{"express":"4","typescript":"5"}}`,
				".gitignore":   ".ralph/\nnode_modules/\n",
			},
		},
	}
}

// setup measures the first and the following issues of a project with packages, compared with setup and gate in a clone with
// an empty home.
func (b *bench) setup(ctx context.Context) error {
	for _, p := range installations() {
		var first, next, bare samples
		for round := range b.slowRounds() {
			b.note("setup of %s, round %d of %d", p.name, round+1, b.slowRounds())
			s, err := b.project(ctx, p)
			if err != nil {
				b.note("no figures of the setup of %s: %v", p.name, err)
				break
			}
			into := &first
			for i := range 3 {
				c, err := measure(s.fetchingCommand(ctx, b.ralph, "work", fmt.Sprintf("issue-%04d", i)))
				if err != nil {
					return err
				}
				into.add(c)
				into = &next
			}
			if err := s.expect(ctx, "ralph/", 3); err != nil {
				return err
			}
			c, err := measure(s.fetchingCommand(ctx, "sh", "-ec", "export HOME=$PWD/../empty GOFLAGS=-modcacherw; "+
				"mkdir ../empty; git clone -q . ../clone; cd ../clone; "+p.setup+"; "+p.gate))
			if err != nil {
				return err
			}
			bare.add(c)
			if err := os.RemoveAll(s.dir); err != nil {
				return err
			}
		}
		if len(bare.elapsed) > 0 {
			b.out.add("setup of "+p.name+", the first issue: time", first.elapsed, bare.elapsed, "")
			b.out.add("setup of "+p.name+", the next issues: time", next.elapsed, bare.elapsed, "")
		}
	}
	return nil
}

// project creates a scene that ralph init has set up for the sandbox native.
func (b *bench) project(ctx context.Context, p installs) (scene, error) {
	s, err := b.newScene(ctx, 0, 0)
	if err != nil {
		return s, err
	}
	for file, text := range p.files {
		if err := s.write(file, text); err != nil {
			return s, err
		}
	}
	for _, args := range [][]string{
		{"sh", "-ec", p.lock + " && git add . && git commit --quiet --message=project"},
		{
			b.ralph, "init", "--agent=command", "--agent-command=sh -c " + quote(commitAgent), "--sandbox=native", "--tracker=local",
		},
	} {
		if out, err := s.fetchingCommand(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return s, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	for i := range 3 {
		if err := s.issue(i); err != nil {
			return s, err
		}
	}
	return s, nil
}

// fetchingCommand returns a program that runs in the scene and fetches packages from the same hosts as the user's tools.
func (s scene) fetchingCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := s.command(ctx, name, args...)
	for variable, tool := range map[string][]string{
		"GOPROXY":             {"go", "env", "GOPROXY"},
		"GOSUMDB":             {"go", "env", "GOSUMDB"},
		"npm_config_registry": {"npm", "config", "get", "registry"},
	} {
		if out, err := exec.CommandContext(ctx, tool[0], tool[1:]...).Output(); err == nil { //nolint:gosec // they are in the table
			cmd.Env = append(cmd.Env, variable+"="+strings.TrimSpace(string(out)))
		}
	}
	return cmd
}
