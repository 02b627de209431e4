package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{}`:                                ``,
		` { "a" : 1 , "b" : [2] } `:         `1`,
		`{"b":"\"a\":2","a":{"a":"\\"}}`:    `{"a":"\\"}`,
		`{"\u0061":true}`:                   `true`,
		`{"a":null}`:                        ``,
		`{"a":"x\\\"","b":[[[{"a":"}"}]]]}`: `"x\\\""`,
		`{"a":1,"a":2}`:                     `error`,
		`{"a":1,}`:                          `error`,
		`{"a":1}}`:                          `error`,
		`{"a":1} x`:                         `error`,
		`{"a" 1}`:                           `error`,
		`{"a":}`:                            `error`,
		`{"a":}]`:                           `error`,
		`{"a":"x}`:                          `error`,
		`{a:1}`:                             `error`,
		`{"a":foo}`:                         `error`,
		`[1]`:                               `error`,
		``:                                  `error`,
		strings.Repeat(`{"a":`, 9):          `error`,
	} {
		var raw []byte
		got := ""
		if err := object([]byte(doc), field{"a", &raw}); err != nil {
			got = "error"
		} else {
			got = string(raw)
		}
		if got != want {
			t.Errorf("%s: a is %s, want %s", doc, got, want)
		}
	}
}

// FuzzObject compares with encoding/json: whatever that accepts, without a key twice, is read the same.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":"\u00e9\n","b":[{"a":2}],"c":{}}`, `{"\u0061":-1.5e3 , "b":null}`, `{"a":[`, `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var raw []byte
		err := object(doc, field{"a", &raw})
		var want map[string]json.RawMessage
		if json.Unmarshal(doc, &want) != nil || want == nil {
			return // object checks what it steps over for balance only
		}
		if err != nil {
			if bytes.Count(doc, []byte("a"))+bytes.Count(doc, []byte(`\u0061`)) < 2 {
				t.Fatalf("%q: %v", doc, err)
			}
			return // the key may be there twice
		}
		if got := orNil(want["a"]); !bytes.Equal(raw, got) {
			t.Fatalf("%q: a is %q, want %q", doc, raw, got)
		}
		var s string
		if json.Unmarshal(raw, &s) == nil && raw != nil {
			if got, err := text(raw); err != nil || got != s {
				t.Fatalf("text(%q) = %q, %v, want %q", raw, got, err, s)
			}
		}
	})
}

func TestClip(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                              "",
		" a \r\n\tb ":                   "a b",
		"\x1b[31mred\x00":               "[31mred",
		"a\u202eb\u200b\U000e0041c":     "abc",
		"x\xff\xfey \uFFFD":             "xy \uFFFD",
		"\u2028漢字":                      "漢字",
		"0123456789":                    "0123456789",
		"0123456789a":                   "0123456789…",
		strings.Repeat(" ", 1000) + "a": "…",
	} {
		if got := clip(s, 10); got != want {
			t.Errorf("clip(%.40q) = %q, want %q", s, got, want)
		}
	}
}
