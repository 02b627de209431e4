package container

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestReadInfo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dialect Dialect
		text    string
		want    info
		bad     string
	}{
		"docker":          {DialectDocker, `{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"SecurityOptions":["name=seccomp,profile=default"]}`, info{}, ""},
		"docker rootless": {DialectDocker, `{"MemoryLimit":true,"PidsLimit":false,"CpuCfsQuota":true,"SecurityOptions":["name=rootless"]}`, info{rootless: true, lacking: []string{"pids"}}, ""},
		"docker down":     {DialectDocker, `{"ServerErrors":["Cannot connect\nat all"]}`, info{}, "Cannot connect"},
		"docker no json":  {DialectDocker, `Server Version: 20`, info{}, "invalid character"},
		"podman root":     {DialectPodman, `{"host":{"cgroupVersion":"v1","security":{"rootless":false}}}`, info{}, ""},
		"podman v1":       {DialectPodman, `{"host":{"cgroupVersion":"v1","cgroupControllers":["memory","pids","cpu"],"security":{"rootless":true}}}`, info{rootless: true, lacking: []string{"memory", "pids", "cpu"}}, ""},
		"podman v2":       {DialectPodman, `{"host":{"cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true}}}`, info{rootless: true, lacking: []string{"cpu"}}, ""},
		"podman types":    {DialectPodman, `{"host":7}`, info{}, "cannot unmarshal"},
	} {
		got, err := readInfo(tt.dialect, []byte(tt.text))
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: error is %v", name, err)
			}
			continue
		}
		if err != nil || got.rootless != tt.want.rootless || !slices.Equal(got.lacking, tt.want.lacking) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

func FuzzReadInfo(f *testing.F) {
	f.Add([]byte(`{"host":{"security":{"rootless":true}},"ServerErrors":["x"]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = readInfo(DialectDocker, text)
		_, _ = readInfo(DialectPodman, text)
	})
}

func FuzzReadImage(f *testing.F) {
	f.Add([]byte(`[{"Id":"sha256:1","Config":{"User":"1000:1000","Env":["PATH=/bin"]}}]`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		img, err := readImage(text)
		if err == nil && img.id == "" {
			t.Error("an image without an id")
		}
		if u, ok := img.numericUser(); ok && (u.uid < 0 || u.gid < 0) {
			t.Errorf("user %+v", u)
		}
	})
}

func TestParseUser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]user{"0": {0, 0}, "1000": {1000, 1000}, "7:8": {7, 8}} {
		if got, err := parseUser(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "root", "1:", ":1", "-1", "1:2:3", "99999999999", "1 "} {
		if got, err := parseUser(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, got)
		}
	}
}

// heard is one frame.
type heard struct {
	kind    byte
	payload string
}

func TestFramesSurviveAnySplit(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	w := &frameWriter{w: &wire}
	want := []heard{{'a', ""}, {'o', "some\x00bytes\xff"}, {'r', strings.Repeat("x", 200_000)}, {'x', "{}"}}
	for _, f := range want {
		if err := w.send(f.kind, []byte(f.payload)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []int{1, 2, 3, 5, 7, 4096, 1 << 20} {
		var got []heard
		r := &frameReader{on: func(kind byte, p []byte) error {
			got = append(got, heard{kind, string(p)})
			return nil
		}}
		for part := range slices.Chunk(wire.Bytes(), step) {
			if n, err := r.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in steps of %d: %d frames", step, len(got))
		}
	}
}

// FuzzFrames: no bytes make the reader panic, and none make it hold more than it was given.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\x00\x00\x00\x00o\x00\x00\x00\x01z"), 3)
	f.Add([]byte("o\xff\xff\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, wire []byte, step int) {
		total := 0
		r := &frameReader{on: func(_ byte, p []byte) error { total += len(p) + headSize; return nil }}
		for part := range slices.Chunk(wire, min(max(step, 1), 1<<20)) {
			if _, err := r.Write(part); err != nil {
				break
			}
		}
		if total > len(wire) {
			t.Errorf("%d bytes heard of %d", total, len(wire))
		}
	})
}
