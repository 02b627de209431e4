package describe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
)

func TestEngines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decode func([]byte) (describe.Engine, error)
		text   string
		want   describe.Engine
		bad    string
	}{
		"docker":          {describe.Docker, `{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"SecurityOptions":["name=seccomp,profile=default"]}`, describe.Engine{}, ""},
		"docker rootless": {describe.Docker, `{"MemoryLimit":true,"PidsLimit":false,"CpuCfsQuota":true,"SecurityOptions":["name=rootless"]}`, describe.Engine{Rootless: true, Lacking: []string{"pids"}}, ""},
		"docker down":     {describe.Docker, `{"ServerErrors":["Cannot connect\nat all"]}`, describe.Engine{}, "Cannot connect"},
		"docker no json":  {describe.Docker, `Server Version: 20`, describe.Engine{}, "invalid character"},
		"podman root":     {describe.Podman, `{"host":{"cgroupVersion":"v1","security":{"rootless":false}}}`, describe.Engine{}, ""},
		"podman v1":       {describe.Podman, `{"host":{"cgroupVersion":"v1","cgroupControllers":["memory","pids","cpu"],"security":{"rootless":true}}}`, describe.Engine{Rootless: true, Lacking: []string{"memory", "pids", "cpu"}}, ""},
		"podman v2":       {describe.Podman, `{"host":{"cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true}}}`, describe.Engine{Rootless: true, Lacking: []string{"cpu"}}, ""},
		"podman types":    {describe.Podman, `{"host":7}`, describe.Engine{}, "cannot unmarshal"},
	} {
		got, err := tt.decode([]byte(tt.text))
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: error is %v", name, err)
			}
			continue
		}
		if err != nil || got.Rootless != tt.want.Rootless || !slices.Equal(got.Lacking, tt.want.Lacking) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

func FuzzEngines(f *testing.F) {
	f.Add([]byte(`{"host":{"security":{"rootless":true}},"ServerErrors":["x"]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = describe.Docker(text)
		_, _ = describe.Podman(text)
	})
}

func FuzzOneImage(f *testing.F) {
	f.Add([]byte(`[{"Id":"sha256:1","Config":{"User":"1000:1000","Env":["PATH=/bin"]}}]`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		img, err := describe.OneImage(text)
		if err == nil && img.ID == "" {
			t.Error("an image without an id")
		}
	})
}

// TestImageEnvironment: an image's environment neither loads code into commands nor finds programs among a run's files.
func TestImageEnvironment(t *testing.T) {
	t.Parallel()
	made := describe.Image{Env: []string{
		"PATH=/w/bin:/usr/local/go/bin:bin::/tmp/x:/w2/bin:.", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=lib", "BASH_ENV=/w/x", "GOPATH=/go", "ENV=test",
	}}
	if got := strings.Join(made.Environment("/w"), " "); got != "PATH=/usr/local/go/bin:/w2/bin GOPATH=/go ENV=test" {
		t.Errorf("environment is %s", got)
	}
}
