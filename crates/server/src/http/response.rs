//! Writes responses: status line, headers, body.

use super::request::Fault;

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: String,
    /// True for the files of the console, which get headers that restrict what a browser does with them.
    pub(super) is_page: bool,
}

/// Headers that let a browser load scripts and styles of this server and connect to it, and nothing else.
const PAGE_HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; \
    style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n";

impl Answer {
    /// A response that consists of a line of text.
    pub(super) fn text(status: u16, line: &str) -> Answer {
        let body = format!("{line}\n");
        Answer { status, content_type: "text/plain; charset=utf-8", body, is_page: false }
    }

    /// The response to an invalid request.
    pub(super) fn of_fault(fault: Fault) -> Answer {
        match fault {
            Fault::Malformed(what) => Answer::text(400, what),
            Fault::HeadTooLong => Answer::text(431, "the request header is too long"),
            Fault::BodyTooLong => Answer::text(413, "the request body is too long"),
            Fault::Encoded => Answer::text(501, "transfer encodings are not supported"),
            Fault::Version => Answer::text(505, "only HTTP/1.1 and HTTP/1.0 are supported"),
        }
    }

    /// Returns the whole response, which has no body for a HEAD request. `now_s` is the Unix time for its date.
    pub(super) fn bytes(&self, is_head: bool, keeps_alive: bool, now_s: u64) -> Vec<u8> {
        let more = match self.status {
            401 => "WWW-Authenticate: Basic realm=\"brisk\", charset=\"UTF-8\"\r\n",
            405 => "Allow: GET, HEAD\r\n",
            426 => "Sec-WebSocket-Version: 13\r\n",
            _ if self.is_page => PAGE_HEADERS,
            _ => "",
        };
        let head = format!(
            "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\n{more}Connection: {}\r\n\r\n",
            self.status,
            reason(self.status),
            date(now_s),
            self.content_type,
            self.body.len(),
            if keeps_alive { "keep-alive" } else { "close" },
        );
        let body = if is_head { "" } else { self.body.as_str() };
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "HTTP Version Not Supported",
    }
}

/// Formats a Unix time as an HTTP date.
fn date(now_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let (days, time) = (now_s / 86_400, now_s % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year. Days are counted from 1 March of the
    // year 0, in cycles of 400 years.
    let days_of_era = days + 719_468;
    let (era, day) = (days_of_era / 146_097, days_of_era % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day + 2) / 153;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    format!(
        "{}, {:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        day - (153 * month + 2) / 5 + 1,
        MONTHS[month as usize % 12],
        time / 3_600,
        time / 60 % 60,
        time % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The output of `date -u -R -d @N`.
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(second), text);
        }
    }

    #[test]
    fn a_response_to_head_has_the_length_of_the_body() {
        let bytes = Answer::text(405, "no").bytes(true, false, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{text}");
        assert!(
            text.contains("\r\nContent-Length: 3\r\n") && text.contains("\r\nAllow: GET, HEAD\r\n")
        );
        assert!(text.ends_with("Connection: close\r\n\r\n"), "{text}");
    }
}
