package compare

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/watchmill/watchmill/bench"
)

// Schema is the version of the JSON form of Report. It grows with any change that
// a reader of an older one would misread.
const Schema = 1

// Report is what a plan's runs measured.
type Report struct {
	Schema  int     `json:"schema"`
	Machine Machine `json:"machine"`
	// Small says that the sizes were small, so that the figures mean nothing.
	Small     bool       `json:"small,omitempty"`
	Workloads []Measured `json:"workloads"`
}

// Measured is what the runs of one workload measured.
type Measured struct {
	ID     string       `json:"id"`
	Text   string       `json:"text"`
	Params bench.Params `json:"params"`
	Rounds []Round      `json:"rounds"`

	goals []bench.Goal
}

// Round is one run of everybody.
type Round struct {
	Ours   bench.Result `json:"ours"`
	Rivals []Rival      `json:"rivals,omitempty"`
	Floor  bench.Result `json:"floor"`
}

// Rival is one run of a rival.
type Rival struct {
	Name   string       `json:"name"`
	Result bench.Result `json:"result,omitempty"`
	// Failed says why there is no result.
	Failed string `json:"failed,omitempty"`
}

// rival returns the round's run of the rival of that name.
func (r Round) rival(name string) bench.Result {
	for _, rival := range r.Rivals {
		if rival.Name == name {
			return rival.Result
		}
	}
	return nil
}

// WriteJSON writes the report with every single figure.
func (r *Report) WriteJSON(to io.Writer) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Failures says which runs of rivals failed, and why.
func (r *Report) Failures() []string {
	var all []string
	for _, m := range r.Workloads {
		for i, round := range m.Rounds {
			for _, rival := range round.Rivals {
				if rival.Failed != "" {
					all = append(all, fmt.Sprintf("%s, %s, round %d: %s", m.ID, rival.Name, i+1, rival.Failed))
				}
			}
		}
	}
	return all
}
