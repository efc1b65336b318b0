package accept

import (
	"net/http"
	"strconv"
	"strings"
)

// Gzip reports whether a client takes compressed answers.
func Gzip(h http.Header) bool {
	for one := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, quality, weighted := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		_, q, _ := strings.Cut(quality, "=")
		n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighted || err == nil && n > 0
	}
	return false
}
