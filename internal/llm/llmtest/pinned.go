package llmtest

// PinnedPlan is a plan of 600 bytes and four steps, used to measure the time to the first step: three reads, for
// web_search, calculate and query_hr, and a call of mail.send that waits for them.
const PinnedPlan = `{"steps":[{"id":"s1","tool":"web_search","arguments":{"query":"latest AI news this week","limit":5}},{"id":"s2","tool":"calculate","arguments":{"expression":"2500 * 0.15"}},{"id":"s3","tool":"query_hr","arguments":{"question":"Who works in the Berlin office, and who is the manager of each of the people there at the moment?","fields":["name","email","office","manager"]}},{"id":"s4","tool":"mail.send","arguments":{"to":["team@example.org"],"body":"Here is the news of the week, the fifteen per cent that you asked for, ${s1.results.0.title} ${s2} ${s3.rows.0.email}"},"after":["s2"]}],"more":false}`
