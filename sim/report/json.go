package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrSchema: the file is no report, or one of another version.
var ErrSchema = errors.New("not a report of this version")

// WriteJSON writes the report as JSON, to be read by [ReadJSON].
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// ReadJSON reads a report. Fields that are not known are passed over: they are
// of a newer program. Errors: [ErrSchema], what reading r met.
func ReadJSON(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if rep.Schema != Schema {
		return nil, fmt.Errorf("%w: schema %q, want %q", ErrSchema, rep.Schema, Schema)
	}
	return rep, nil
}
