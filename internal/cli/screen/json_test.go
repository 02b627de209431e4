package screen

import (
	"bytes"
	"encoding/json"
	"testing"
)

// JSON contains no control or invisible characters, and decodes to the same text.
func TestJSONIsPlain(t *testing.T) {
	t.Parallel()
	const text = "é 😀 <a> \u009b31m \x7f \x1b[0m \u202e \u200b \u200d \ufeff \u2028 \U000e0041 \t\n"
	var out bytes.Buffer
	if err := WriteJSON(&out, []string{text}, ""); err != nil {
		t.Fatal(err)
	}
	want := `["é 😀 <a> \u009b31m \u007f \u001b[0m \u202e \u200b \u200d \ufeff \u2028 \udb40\udc41 \t\n"]` + "\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	var got []string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got[0] != text {
		t.Errorf("read as %q, %v", got, err)
	}
}
