package proc

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// procArgs builds a result of kern.procargs2.
func procArgs(path string, padding int, args, env []string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(len(args)))
	b = append(b, path...)
	b = append(b, make([]byte, 1+padding)...)
	for _, s := range append(append([]string{}, args...), env...) {
		b = append(append(b, s...), 0)
	}
	return b
}

func TestParseProcArgs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		raw  []byte
		want string
	}{
		{"plain", procArgs("/bin/sh", 3, []string{"sh", "-c", "x"}, []string{"A=1", "B=2"}), "A=1\x00B=2\x00"},
		{"an argument like an entry", procArgs("/bin/sh", 0, []string{"sh", "A=1"}, []string{"B=2"}), "B=2\x00"},
		{"an empty argument", procArgs("/bin/sh", 7, []string{"sh", "", "y"}, []string{"B=2"}), "B=2\x00"},
		{"no environment", procArgs("/bin/sh", 1, []string{"sh"}, nil), ""},
		{"empty", nil, ""},
		{"short", []byte{1, 0}, ""},
		{"only a count", []byte{1, 0, 0, 0}, ""},
		{"a count without arguments", []byte{255, 255, 0, 0, 'x', 0, 'y', 0}, ""},
		{"a negative count", []byte{255, 255, 255, 255, 'x', 0, 'y', 0}, "y\x00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := parseProcArgs(tt.raw); string(got) != tt.want {
				t.Errorf("environment is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestContains(t *testing.T) {
	t.Parallel()
	const block = "A=1\x00\x00MARK=x y\x00Z=\x00last=1"
	for entry, want := range map[string]bool{
		"A=1": true, "MARK=x y": true, "Z=": true, "last=1": true,
		"A=": false, "=1": false, "MARK=x": false, "y": false, "last=": false,
	} {
		if got := contains([]byte(block), entry, false); got != want {
			t.Errorf("contains %q: %v, want %v", entry, got, want)
		}
	}
	if contains(nil, "A=1", false) {
		t.Error("nothing contains something")
	}
}

func FuzzParseProcArgs(f *testing.F) {
	f.Add(procArgs("/bin/sh", 3, []string{"sh", ""}, []string{"A=1"}))
	f.Add([]byte{255, 255, 255, 127, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if env := parseProcArgs(raw); !bytes.HasSuffix(raw, env) {
			t.Errorf("%q is not the end of %q", env, raw)
		}
	})
}
