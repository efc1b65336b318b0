package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of reading.
var (
	// ErrNotReport: the data is not a report.
	ErrNotReport = errors.New("not a report of a run")
	// ErrSchema: the report has another version.
	ErrSchema = errors.New("a report of another version")
	// ErrTorn: the data is cut short, for example by a full disk.
	ErrTorn = errors.New("a torn report")
)

// WriteJSON writes the report as JSON, which [ReadJSON] reads. SCHEMA.md, in this
// directory, lists the fields with their units. Errors: the error of w.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// maxReport is the most bytes that a report has; those of a run of a day have a few hundred
// thousand.
const maxReport = 64 << 20

// ReadJSON reads a report. It ignores unknown fields, which newer programs write.
// Errors: [ErrNotReport], [ErrSchema], [ErrTorn], the error of r.
func ReadJSON(r io.Reader) (*Report, error) {
	data, err := whole(r)
	if err != nil {
		return nil, err
	}
	if err := schema(data); err != nil {
		return nil, err
	}
	rep := &Report{}
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReport, err)
	}
	if rep.Metrics == nil {
		return nil, fmt.Errorf("%w: it has no metrics", ErrNotReport)
	}
	return rep, nil
}

// whole reads one JSON value, which nothing may follow.
func whole(r io.Reader) (json.RawMessage, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReport {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrNotReport, maxReport)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	switch err := d.Decode(&value); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it is empty", ErrTorn)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it ends in the middle, after %d bytes", ErrTorn, len(data))
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotReport, err)
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("%w: there is more after it, from byte %d on", ErrNotReport, d.InputOffset())
	}
	return value, nil
}

// schema checks that the data is a report, of the version that this program reads.
func schema(data []byte) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReport, err)
	}
	family, _, _ := strings.Cut(Schema, "/")
	switch {
	case head.Schema == Schema:
		return nil
	case head.Schema == "":
		return fmt.Errorf("%w: it has no schema", ErrNotReport)
	case !strings.HasPrefix(head.Schema, family+"/"):
		return fmt.Errorf("%w: its schema is %q", ErrNotReport, head.Schema)
	}
	return fmt.Errorf("%w: %q, and this program reads %q", ErrSchema, head.Schema, Schema)
}
