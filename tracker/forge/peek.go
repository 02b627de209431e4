package forge

import (
	"bytes"
	"io"
	"net/http"
)

// peek reads the start of a body that is in memory and puts it back.
func peek(resp *http.Response) string {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return string(body[:min(len(body), 4<<10)])
}
