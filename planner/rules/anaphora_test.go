package rules

import "testing"

// TestAnaphora: a later call takes from an earlier one what the question says it takes, and nothing else.
func TestAnaphora(t *testing.T) {
	register := tool("register_event", "Register for an event", `{"properties":{"event_name":{"type":"string","description":"Name of the event"}},"required":["event_name"]}`,
		returning(`{"properties":{"status":{"type":"string"},"event_id":{"type":"string"}}}`))
	join := tool("join_event", "Join an event", `{"properties":{"event_id":{"type":"string","description":"The event"}},"required":["event_id"]}`)
	lesson := tool("find_lesson_plan", "Find a lesson plan on a topic", `{"properties":{"topic":{"type":"string","description":"Topic of the lesson plan"}},"required":["topic"]}`,
		returning(`{"properties":{"lesson_plan":{"type":"string"},"artist":{"type":"string"}}}`))
	artist := tool("get_artist_details", "Get the details of an artist", `{"properties":{"artist":{"type":"string","description":"Name of the artist"}},"required":["artist"]}`)
	translate := tool("translate_text", "Translate a text to another language", `{"properties":{"text":{"type":"string","description":"The text to translate"},"language":{"type":"string","description":"The language"}},"required":["text","language"]}`,
		returning(`{"properties":{"translated_text":{"type":"string"}}}`))
	summary := tool("summarize_text", "Write a summary of a text", `{"properties":{"text":{"type":"string","description":"The text to summarize"}},"required":["text"]}`)
	dimensions := tool("get_room_dimensions", "Get the dimensions of a room", `{"properties":{"room":{"type":"string","description":"Name of the room"}},"required":["room"]}`,
		returning(`{"properties":{"length":{"type":"number"},"width":{"type":"number"},"height":{"type":"number"}}}`))
	volume := tool("calculate_concrete_volume", "Calculate the volume of concrete", `{"properties":{"length":{"type":"number"},"width":{"type":"number"},"height":{"type":"number"}},"required":["length","width","height"]}`)

	for _, tc := range []struct{ question, want string }{
		{"Register for the event 'Science Day'. Then join the event with the event ID obtained from the registration.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"$s1.event_id"}`},
		{"Register for the event 'Science Day', then join the event using the ID from the previous response.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"$s1.event_id"}`},
		{"Register for the event 'Science Day', then join the event with the returned ID.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"$s1.event_id"}`},
		{"Register for the event 'Science Day', then join the event with the ID you get back.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"$s1.event_id"}`},
		{"Register for the event 'Science Day' and then join it using that ID.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"$s1.event_id"}`},
		{"Register for the event 'Science Day', then join the event with the ID E-77.",
			`register_event{"event_name":"Science Day"} join_event{"event_id":"E-77"}`},
		{"Find a lesson plan on the topic 'rhythm'. After that, get the details of the artist mentioned in the lesson plan.",
			`find_lesson_plan{"topic":"rhythm"} get_artist_details{"artist":"$s1.artist"}`},
		{"Find a lesson plan on the topic 'rhythm'. Then get the details of the artist mentioned earlier.",
			`find_lesson_plan{"topic":"rhythm"} get_artist_details{"artist":"$s1.artist"}`},
		{"Find a lesson plan on the topic 'rhythm', then get the details of the artist found in it.",
			`find_lesson_plan{"topic":"rhythm"} get_artist_details{"artist":"$s1.artist"}`},
		{"Translate the text 'Good morning' to Spanish. Then write a summary of the translated text.",
			`translate_text{"language":"Spanish","text":"Good morning"} summarize_text{"text":"$s1.translated_text"}`},
		{"Translate the text 'Good morning' to Spanish, then summarize it.",
			`translate_text{"language":"Spanish","text":"Good morning"} summarize_text{"text":"$s1.translated_text"}`},
		// What is asked for is not what is done with it, and "after that" speaks of no result.
		{"Get the dimensions of the room 'Attic'. Please provide the length, width and height of the room.", `get_room_dimensions{"room":"Attic"}`},
		{"Get the dimensions of the room 'Attic'. After that, write a summary of the text 'Hello'.",
			`get_room_dimensions{"room":"Attic"} summarize_text{"text":"Hello"}`},
	} {
		if got := calls(t, tc.question, register, join, lesson, artist, translate, summary, dimensions, volume); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.question, got, tc.want)
		}
	}
}

// TestProducersThatAct: nobody books or creates something for its result alone, and a field of the same name is no
// reason to call a tool about something else.
func TestProducersThatAct(t *testing.T) {
	update := tool("update_brand", "Update a brand", `{"properties":{"brand_id":{"type":"string"},"slogan":{"type":"string"}},"required":["brand_id","slogan"]}`)
	create := tool("create_brand", "Create a brand", `{"properties":{"name":{"type":"string","description":"Name of the brand"}},"required":["name"]}`,
		returning(`{"properties":{"brand_id":{"type":"string"}}}`))
	enroll := tool("enroll_student", "Enroll a student", `{"properties":{"student":{"type":"string","description":"Name of the student"},"age":{"type":"integer"}},"required":["student","age"]}`)
	cosmic := tool("get_cosmic_age", "Get the age of the universe", `{"properties":{}}`, returning(`{"properties":{"age":{"type":"integer"}}}`))
	for _, q := range []string{"Update the brand with the slogan 'Go far'", "Enroll the student 'Ann'"} {
		if got := calls(t, q, update, create, enroll, cosmic); got != "" {
			t.Errorf("%q: got %s, want no call", q, got)
		}
	}
}
